"""What tests written for torch_npu import: a test case, tensors for it, decorators."""
