"""Line formats: plain text, JSON Lines, CSV and TSV."""
