"""The last program of the article: a PyPTO operator inside of torch, as the text has it.

Its backward is `pass`: opkit warns of it at that line, and no input gets a gradient.
"""

import torch
import pypto
from article import custom_linear


class PyPTOLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        output = custom_linear(x.numpy(), weight.numpy(), bias.numpy())
        return torch.from_numpy(output)

    @staticmethod
    def backward(ctx, grad_output):
        pass


class LinearLayer(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(out_features, in_features))
        self.bias = torch.nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return PyPTOLinear.apply(x, self.weight, self.bias)


if __name__ == "__main__":
    layer = LinearLayer(16, 8)
    print(tuple(layer(torch.randn(4, 16)).shape))
