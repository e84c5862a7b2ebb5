"""What tests written for torch_npu import: a test case, tensors for it, decorators."""

__all__ = ["common_distributed", "common_utils", "decorator", "testcase"]
