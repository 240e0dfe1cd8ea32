"""The HTTP application: middleware, connections, problems, paging, files and its description."""
