# find_package(ASC): makes the CMake language ASC available to a later project() or enable_language(), and gives the
# names of the vendor's libraries, which opkit's emulator covers, to target_link_libraries().
#
# Usually called before project(), so it may not need a compiler.

get_filename_component(_opkit_cmake_dir "${CMAKE_CURRENT_LIST_DIR}" ABSOLUTE)
list(FIND CMAKE_MODULE_PATH "${_opkit_cmake_dir}" _opkit_index)
if(_opkit_index EQUAL -1)
  list(APPEND CMAKE_MODULE_PATH "${_opkit_cmake_dir}")
endif()
unset(_opkit_index)

get_filename_component(ASC_INCLUDE_DIR "${_opkit_cmake_dir}/../include" ABSOLUTE)
set(ASC_INCLUDE_DIRS "${ASC_INCLUDE_DIR}")
# Plain C++ sources of the project include acl/acl.h too.
include_directories(SYSTEM "${ASC_INCLUDE_DIR}")

# Which way the program runs is the vendor's choice of chip, twin or simulator: here there is one way.
if(DEFINED CMAKE_ASC_RUN_MODE AND NOT CMAKE_ASC_RUN_MODE MATCHES "^(npu|cpu|sim)$")
  message(FATAL_ERROR "CMAKE_ASC_RUN_MODE is \"${CMAKE_ASC_RUN_MODE}\": choose npu, cpu or sim; opkit runs all alike")
endif()

# Editors take each source's macros and include folders from compile_commands.json.
if("${CMAKE_EXPORT_COMPILE_COMMANDS}" STREQUAL "")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

# A target that is linked by the C++ compiler needs the emulator by its path; opkit cc finds it by itself.
get_filename_component(_opkit_library "${_opkit_cmake_dir}/../lib/libopkit_emulator.so" ABSOLUTE)
if(NOT EXISTS "${_opkit_library}")
  # Where opkit is installed from a checkout, the library lies elsewhere.
  get_filename_component(_opkit_library "$ENV{ASCEND_HOME_PATH}/lib64/libopkit_emulator.so" REALPATH)
endif()
if(EXISTS "${_opkit_library}")
  set(ASC_LIBRARIES "${_opkit_library}")
  get_filename_component(ASC_LIBRARY_DIR "${_opkit_library}" DIRECTORY)
  # Hands the options of "opkit run" to a program; what opkit cc links has it already.
  set(_opkit_start "$ENV{ASCEND_HOME_PATH}/lib64/opkit_start.o")
  if(EXISTS "${_opkit_start}")
    set(_opkit_is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
    list(APPEND ASC_LIBRARIES "$<$<AND:${_opkit_is_program},$<NOT:$<LINK_LANGUAGE:ASC>>>:${_opkit_start}>")
    unset(_opkit_is_program)
  endif()
  unset(_opkit_start)
  foreach(_opkit_name IN ITEMS
      acl_mdl acl_op_executor acl_rt acl_rtc ascend_dump ascendalog ascendcl c_sec error_manager exe_graph graph
      graph_base metadef msprofiler nnopbase platform profapi register rt2_registry runtime tiling_api unified_dlog)
    if(NOT TARGET ${_opkit_name})
      add_library(${_opkit_name} INTERFACE IMPORTED)
      set_property(TARGET ${_opkit_name} PROPERTY INTERFACE_LINK_LIBRARIES "${ASC_LIBRARIES}")
    endif()
  endforeach()
endif()
include("${_opkit_cmake_dir}/npu_op.cmake")
unset(_opkit_name)
unset(_opkit_library)
unset(_opkit_cmake_dir)

set(ASC_FOUND TRUE)
