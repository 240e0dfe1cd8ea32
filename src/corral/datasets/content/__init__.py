"""The bytes of datasets: chunks, pieces, packs and where they are stored."""
