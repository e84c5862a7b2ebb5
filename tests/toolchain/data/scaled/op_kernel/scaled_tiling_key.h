// No guard: public libraries have such headers, and kernels that include them twice.
#include "ascendc/host_api/tiling/template_argument.h"
#include "scaled_tiling.h"

#define FACTORS ASCENDC_TPL_UI_MIX, 1, 1, 3, 8

ASCENDC_TPL_ARGS_DECL(Scaled, ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT16, C_DT_FLOAT, ASCENDC_TPL_INPUT(0)),
                      ASCENDC_TPL_UINT_DECL(FACTOR, ASCENDC_TPL_4_BW, FACTORS),
                      ASCENDC_TPL_BOOL_DECL(IS_NEGATED, kPlain, kNegated), );

ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
                                     ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT16),
                                     ASCENDC_TPL_UINT_SEL(FACTOR, ASCENDC_TPL_UI_LIST, 2),
                                     ASCENDC_TPL_BOOL_SEL(IS_NEGATED, kPlain), ),
                ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
                                     ASCENDC_TPL_TILING_STRUCT_SEL(ScaledFloatTiling),
                                     ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT),
                                     ASCENDC_TPL_UINT_SEL(FACTOR, ASCENDC_TPL_UI_LIST, 2, 8),
                                     ASCENDC_TPL_BOOL_SEL(IS_NEGATED, kPlain, kNegated), ), );
