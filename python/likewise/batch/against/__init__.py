"""What a run is compared with beside itself: earlier runs, files, an index."""
