#include "infershape_elewise_util.h"
#include "log/log.h"
#include "platform/platform_info.h"
#include "register/op_impl_registry.h"
#include "shift_limits.h"

static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  fe::PlatformInfo platform_info;
  fe::OptionalInfo optional_info;
  OP_CHECK_IF(fe::PlatformInfoManager::Instance().GetPlatformInfoWithOutSocVersion(platform_info, optional_info) !=
                  ge::GRAPH_SUCCESS,
              OP_LOGE(context, "no platform"), return ge::GRAPH_FAILED);
  const gert::Shape* shape = context->GetInputShape(0);
  OP_CHECK_IF(
      shape->GetDimNum() > kMostDims,
      OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(context->GetNodeName(), "x", std::to_string(shape->GetDimNum()),
                                               platform_info.str_info.short_soc_version + " takes 4", "no more"),
      return ge::GRAPH_FAILED);
  return Ops::Base::InferShape4Elewise(context);
}
IMPL_OP_INFERSHAPE(Shift).InferShape(InferShape);
