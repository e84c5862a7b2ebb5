# The CMake functions of operator projects (npu_op_package and its kin), so that their own CMakeLists.txt makes the
# same package here: "cmake .. && make binary package && ./custom_opp_*.run".
#
# "opkit build" compiles the project in op_host/ and op_kernel/; the functions say what the package is called and where
# it goes. Source: public programming guide, operator projects, CMake functions.

# Where generated sources would lie: opkit generates none.
set(ASCEND_AUTOGEN_PATH "${CMAKE_BINARY_DIR}/autogen")
set(_opkit_npu_op_dir "${CMAKE_CURRENT_LIST_DIR}")

# The words that start opkit.
function(_opkit_command result)
  if(CMAKE_ASC_COMPILER)
    set(words ${CMAKE_ASC_COMPILER})
    list(REMOVE_ITEM words cc)
    list(APPEND words ${CMAKE_ASC_COMPILER_ARG1})
    list(REMOVE_ITEM words cc)
  else()
    get_filename_component(prefix "${_opkit_npu_op_dir}/../../../../../.." ABSOLUTE)
    find_program(OPKIT_EXECUTABLE NAMES opkit HINTS "${prefix}/bin" DOC "What builds operator projects")
    if(NOT OPKIT_EXECUTABLE)
      message(FATAL_ERROR "There is no opkit on PATH. Pass what \"opkit cc --cmake-args\" prints to cmake.")
    endif()
    set(words "${OPKIT_EXECUTABLE}")
  endif()
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

function(npu_op_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TYPE" "CONFIG")
  if(NOT arg_TYPE STREQUAL "RUN")
    message(FATAL_ERROR "npu_op_package(${name} TYPE ${arg_TYPE}): opkit makes packages of TYPE RUN only")
  endif()
  if(NOT IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/op_host" OR NOT IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/op_kernel")
    message(FATAL_ERROR "npu_op_package(${name}): opkit builds projects with the folders op_host and op_kernel")
  endif()
  cmake_parse_arguments(config "" "INSTALL_PATH;ENABLE_DEFAULT_PACKAGE_NAME_RULE" "" ${arg_CONFIG})
  if(NOT config_INSTALL_PATH)
    set(config_INSTALL_PATH "${CMAKE_BINARY_DIR}")
  endif()
  string(TOLOWER "custom_opp_${CMAKE_HOST_SYSTEM_NAME}_${CMAKE_HOST_SYSTEM_PROCESSOR}.run" file)
  set(artifact "${CMAKE_BINARY_DIR}/opkit/${name}")
  _opkit_command(opkit)
  add_custom_target(opkit_${name} ALL
    COMMAND ${opkit} build "${CMAKE_CURRENT_SOURCE_DIR}" --into "${artifact}"
    COMMENT "Building the operators of ${name}"
    VERBATIM)
  configure_file("${_opkit_npu_op_dir}/package.sh.in" "${CMAKE_BINARY_DIR}/opkit/${name}.sh" @ONLY)
  if(NOT TARGET binary)
    add_custom_target(binary)
  endif()
  if(NOT TARGET package)
    add_custom_target(package)
  endif()
  add_dependencies(binary opkit_${name})
  add_custom_target(opkit_${name}_package
    COMMAND sh "${CMAKE_BINARY_DIR}/opkit/${name}.sh" --pack "${artifact}" "${config_INSTALL_PATH}/${file}"
    COMMENT "Packing ${file}"
    VERBATIM)
  add_dependencies(opkit_${name}_package opkit_${name})
  add_dependencies(package opkit_${name}_package)
endfunction()

# A library of the package, as a target that takes properties; what it holds, opkit build makes.
function(npu_op_library name kind)
  if(kind MATCHES "PLUGIN")
    message(STATUS "opkit does not build ${name}: it has no ${kind} libraries")
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/opkit/empty.cpp" "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/opkit/empty.cpp")
endfunction()

function(npu_op_device_tiling_library name)
  npu_op_library(${name} DEVICE_TILING)
endfunction()

function(npu_op_kernel_library name)
  npu_op_library(${name} KERNEL)
endfunction()

# Read by opkit build, which looks for these calls in the project's CMake files.
function(npu_op_kernel_sources)
endfunction()
function(npu_op_kernel_options)
endfunction()

# Every operator of the project is in the package, and its generated sources are opkit's own.
function(npu_op_package_add)
endfunction()
function(npu_op_code_gen)
endfunction()
