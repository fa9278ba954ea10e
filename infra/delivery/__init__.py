"""Delivery of alerts to where people see them: Alertmanager, or any web address. `forwarder` puts it together."""
