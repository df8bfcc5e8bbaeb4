"""Where events come from: each row a pure function of its offset, released by a rate pattern."""
