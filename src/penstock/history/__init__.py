"""What was: journals of decisions and going on from them."""
