"""The training of embeddings.

The way through, from the call to the kernel, is five calls deep: ``api.train`` checks,
plans and opens the run; ``trainer.Trainer.run`` goes on from its checkpoint to the end;
``_train_epoch`` takes the units of an epoch in order, with a checkpoint where one is due;
``bucket_trainer.BucketTrainer.train`` cuts the buckets of a unit; ``_train_slice`` has
workers run the kernel ``kernels.cpu.embedding.step.train_batches`` on a slice of one. All
take part in one ``TrainingContext``; hooks see the trainer between the steps.
"""
