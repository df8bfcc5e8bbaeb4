"""An application that knows nothing of Penstock, watched through its REST interface alone."""
