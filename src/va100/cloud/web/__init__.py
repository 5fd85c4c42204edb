"""The console: pages drawn on the server, which work without scripts and are livelier with them."""
