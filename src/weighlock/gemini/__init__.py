"""The only place that talks to the service."""
