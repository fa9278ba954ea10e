-- Model cards that verdicts name: how many verdicts, the last window, and whether the card itself is here
SELECT
  verdict.model_card_digest,
  card.name,
  card.version,
  card.model_card_digest IS NOT NULL AS card_known,
  count(*) AS verdicts,
  max(verdict.window_end) AS last_window_end
FROM verdicts AS verdict
LEFT JOIN model_cards AS card ON card.model_card_digest = verdict.model_card_digest
GROUP BY verdict.model_card_digest, card.name, card.version, card.model_card_digest
