# noqa: INP001 - a program that a script runs by its path
"""Trains a small convolutional network on random pictures until it is stopped.

Two loader workers prepare the pictures, of 48 or the given number of pixels a side. Started by
torchrun, it trains together with its peers.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

SIDE = int(sys.argv[1]) if len(sys.argv) > 1 else 48


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Random pictures, cropped, shrunk and normalised as real ones would be."""

    def __len__(self) -> int:
        return 4_096

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = torch.rand(1, 3, 5 * SIDE, 5 * SIDE)
        top, left = torch.randint(0, SIDE, (2,)).tolist()
        picture = picture[:, :, top : top + 4 * SIDE, left : left + 4 * SIDE].flip(3)
        picture = nn.functional.interpolate(picture, SIDE, mode="bicubic", antialias=True)[0]
        return (picture - picture.mean()) / picture.std(), index % 10


def network() -> nn.Module:
    """Return two convolutions and what tells ten classes apart by them."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * SIDE * SIDE // 4, 10),
    )


def train() -> None:
    """Say ``step`` after each step."""
    model = network()
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures = DataLoader(Pictures(), batch_size=32, num_workers=2, pin_memory=True)
    while True:
        for batch, labels in pictures:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(batch), labels).backward()
            optimiser.step()
            sys.stdout.write("step\n")
            sys.stdout.flush()


if __name__ == "__main__":
    train()
