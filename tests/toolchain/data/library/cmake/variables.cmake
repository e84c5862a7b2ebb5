set(OP_TILING_INCLUDE
  ${LIBRARY_DIR}/math
  ${LIBRARY_DIR}/common/inc
)
set(SHIFT_IS_SIGNED ON)
target_compile_definitions(tiling PRIVATE $<$<BOOL:${SHIFT_IS_SIGNED}>:SHIFT_SIGNED> $<$<BOOL:${OTHER}>:SHIFT_OTHER>)
