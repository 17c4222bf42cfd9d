"""Object stores: what is asked of them, and copies of what they hold in the cache."""
