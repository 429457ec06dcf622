"""What commands share: options, progress, output on a terminal."""
