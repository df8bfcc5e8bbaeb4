"""Sites: networks of their own on this machine, with emulated delays between them."""
