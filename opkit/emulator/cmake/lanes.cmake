# The lanes: one text, an object library for each target. opkit_add_lanes(<library>) adds them to a library.
#
# -fno-math-errno lets square roots be instructions; -fwrapv makes integer lanes wrap; contraction would give other
# bits on hosts that can fuse. -fno-trapping-math stays off: nothing here may reorder what a lane computes.
function(opkit_add_lanes library)
  set(directory ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src/isa/lanes)
  set(targets baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    list(APPEND targets avx2 avx512)
    target_compile_definitions(${library} PRIVATE OPKIT_LANES_X86)
  endif()
  set(flags_baseline "")
  set(flags_avx2 -mavx2 -mf16c -mfma)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mf16c -mfma -mprefer-vector-width=512
      -Wno-uninitialized -Wno-maybe-uninitialized)  # GCC's own AVX-512 header
  foreach(target IN LISTS targets)
    set(object opkit_lanes_${target})
    add_library(${object} OBJECT ${directory}/target.cpp)
    set_target_properties(${object} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
      CXX_VISIBILITY_PRESET hidden)
    target_include_directories(${object} PRIVATE
      ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include)
    target_compile_definitions(${object} PRIVATE OPKIT_LANE_TARGET=${target})
    target_compile_options(${object} PRIVATE
      -O3 -ffp-contract=off -fno-math-errno -fwrapv -fno-strict-aliasing -Wno-psabi -Wno-ignored-attributes
      -Wall -Wextra $<$<BOOL:${OPKIT_WERROR}>:-Werror>
      $<$<BOOL:${OPKIT_SANITIZE}>:-fsanitize=address,undefined>
      $<$<BOOL:${OPKIT_COVERAGE}>:--coverage> ${flags_${target}})
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
  target_sources(${library} PRIVATE ${directory}/dispatch.cpp)
endfunction()
