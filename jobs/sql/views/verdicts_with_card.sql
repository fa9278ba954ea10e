-- Verdicts with the model card they were judged under; card_known is false where nobody has given that card
SELECT
  verdict.*,
  card.name AS card_name,
  card.version AS card_version,
  card.signature_status AS card_signature_status,
  card.model_card_digest IS NOT NULL AS card_known
FROM verdicts AS verdict
LEFT JOIN model_cards AS card ON card.model_card_digest = verdict.model_card_digest
