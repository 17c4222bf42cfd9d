"""Edges as a training and an evaluation see them: buckets, schedules, held-out ones."""
