"""corral for assistants: a server of the Model Context Protocol over the client of the command line."""
