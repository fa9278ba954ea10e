"""Where service levels stand, read back from the verdicts that the SLO job writes."""
