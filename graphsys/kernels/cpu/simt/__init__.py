"""What a GPU would do with rows: lanes, sectors, warp schedulers."""
