"""The taxi load of the Gesscale paper under its four policies, on real Spark at sites."""
