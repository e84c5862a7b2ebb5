// A loop of the smallest vector instruction, eight floats, to time what an instruction costs beside its work.
#include "kernel_operator.h"
#include "issue_loop_tiling.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void issue_loop(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    constexpr uint32_t LENGTH = 8;
    REGISTER_TILING_DEFAULT(IssueLoopTilingData);
    GET_TILING_DATA_WITH_STRUCT(IssueLoopTilingData, tilingData, tiling);
    TPipe pipe;
    TBuf<QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, LENGTH * sizeof(float));
    LocalTensor<float> values = buffer.Get<float>();
    GlobalTensor<float> yGlobal;
    yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), LENGTH);
    Duplicate(values, 0.0f, LENGTH);
    volatile int64_t limit = tilingData.instructions;  // read in every round, so that an empty loop stays a loop
    if (tilingData.isEmpty == 0) {
        for (int64_t i = 0; i < limit; ++i) {
            Adds(values, values, 1.0f, LENGTH);
        }
    } else {
        for (int64_t i = 0; i < limit; ++i) {
        }
    }
    const int32_t written = static_cast<int32_t>(pipe.FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(written);
    WaitFlag<HardEvent::V_MTE3>(written);
    DataCopy(yGlobal, values, LENGTH);
}
