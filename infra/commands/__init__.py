"""The subcommands of `slacktide`, one a file, each imported only when it is called."""
