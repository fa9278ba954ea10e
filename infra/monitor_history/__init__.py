"""Where `slacktide monitors backtest` takes past requests from."""
