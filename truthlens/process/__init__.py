"""The process around the gateway: settings, start-up, models, endpoints and who may use them."""
