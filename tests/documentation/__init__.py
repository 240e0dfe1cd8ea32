"""The documentation as tests see it: pages, their blocks, and a terminal that runs them."""
