"""Work on datasets: commit, checkout, update, verification and garbage collection."""
