// custom_matmul_forward.cpp
#include <vector>
#include <memory>
#include "td/mm/memory_manager.h"
#include "aclnn/aclnn_matmul.h"

extern "C" void custom_matmul_forward(
    void* a_data, void* b_data, void* c_data,
    int64_t M, int64_t K, int64_t N,
    int dtype
) {
    td::mm::TensorDesc a_desc, b_desc, c_desc;
    a_desc.dtype = (dtype == 0) ? td::mm::DataType::FLOAT32 : td::mm::DataType::FLOAT16;
    a_desc.shape = {M, K};
    a_desc.format = td::mm::MemoryFormat::CONTIGUOUS;

    b_desc.dtype = a_desc.dtype;
    b_desc.shape = {K, N};
    b_desc.format = td::mm::MemoryFormat::CONTIGUOUS;

    c_desc.dtype = a_desc.dtype;
    c_desc.shape = {M, N};
    c_desc.format = td::mm::MemoryFormat::CONTIGUOUS;

    auto& mm = td::mm::MemoryManager::instance();

    auto a_mem = mm.prepare_tensor(a_data, a_desc, td::mm::CacheLevel::LEVEL_1);
    auto b_mem = mm.prepare_tensor(b_data, b_desc, td::mm::CacheLevel::LEVEL_1);

    auto c_mem = mm.allocate_tensor(c_desc, td::mm::CacheLevel::LEVEL_1);

    aclError status = aclnnMatMul(
        a_mem->data(), a_mem->desc(),
        b_mem->data(), b_mem->desc(),
        c_mem->data(), c_mem->desc(),
        nullptr
    );

    if (status != ACL_SUCCESS) {
        throw std::runtime_error("矩阵乘法执行失败");
    }

    mm.copy_to_host(c_mem, c_data);
}
