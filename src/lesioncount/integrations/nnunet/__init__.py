"""The folder that nnU-Net searches for trainers (``nnUNet_extTrainer``): it imports every module in here by itself."""
