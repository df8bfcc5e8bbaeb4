"""What a run left behind: its folder, figures, picture, page and tables."""
