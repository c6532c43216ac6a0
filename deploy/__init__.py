"""What runs beside the gateway: scrape configuration, alerts, dashboards, manifests."""
