# The CMake functions of operator projects (npu_op_package and its kin), so that their own CMakeLists.txt makes the
# same package here: "cmake .. && make binary package && ./custom_opp_*.run".
#
# The functions list a package's sources in opkit/NAME.operators of the build folder (opkit/toolchain/projects/tree.py reads it),
# and "opkit build" compiles them. Every target keeps its lines of the list in its property OPKIT_LINES.
# Source: public programming guide, operator projects, CMake functions.

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

# A target of the package, made where it is named first: CMake files describe kernels before and after their library.
function(_opkit_part name)
  if(NOT TARGET ${name})
    file(WRITE "${CMAKE_BINARY_DIR}/opkit/empty.cpp" "")
    add_library(${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/opkit/empty.cpp")
  endif()
endfunction()

# Adds a line to the list: its words, apart by tabs.
function(_opkit_line name)
  string(REPLACE ";" "\t" line "${ARGN}")
  set_property(TARGET ${name} APPEND PROPERTY OPKIT_LINES "${line}")
endfunction()

# The chips that something counts for, as one word of a line: "-" for all.
function(_opkit_units result)
  string(REPLACE ";" "," units "${ARGN}")
  if(NOT units)
    set(units "-")
  endif()
  set(${result} "${units}" PARENT_SCOPE)
endfunction()

function(npu_op_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TYPE" "CONFIG")
  if(NOT arg_TYPE MATCHES "^(RUN|SHARED|STATIC)$")
    message(FATAL_ERROR "npu_op_package(${name} TYPE ${arg_TYPE}): the types are RUN, SHARED and STATIC")
  endif()
  cmake_parse_arguments(config "" "INSTALL_PATH;ENABLE_CPACK;ENABLE_SOURCE_PACKAGE;ENABLE_BINARY_PACKAGE" "" ${arg_CONFIG})
  if(DEFINED config_ENABLE_CPACK AND NOT config_ENABLE_CPACK)
    message(FATAL_ERROR "npu_op_package(${name} ENABLE_CPACK ${config_ENABLE_CPACK}): opkit has no packages in parts")
  endif()
  if(NOT config_INSTALL_PATH)
    # The document names the build folder; the public sample parallel_ops_package finds its package below the prefix that
    # it sets.
    set(config_INSTALL_PATH "${CMAKE_INSTALL_PREFIX}")
    if(CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT)
      set(config_INSTALL_PATH "${CMAKE_BINARY_DIR}")
    endif()
  endif()
  set(artifact "${CMAKE_BINARY_DIR}/opkit/${name}")
  set(listing "${artifact}.operators")
  set(library)
  if(NOT arg_TYPE STREQUAL "RUN")
    string(TOLOWER "${arg_TYPE}" kind)
    set(library --library ${kind})
    if(kind STREQUAL "shared")
      set(own "$<TARGET_PROPERTY:${name},OUTPUT_NAME>")
      list(APPEND library "$<$<BOOL:${own}>:--library-file=${own}>")
    endif()
  endif()
  _opkit_command(opkit)
  add_custom_target(${name} ALL
    COMMAND "${opkit}" build "${listing}" --into "${artifact}" "${library}"
    COMMAND_EXPAND_LISTS
    COMMENT "Building the operators of ${name}"
    VERBATIM)
  _opkit_line(${name} package "${name}")
  _opkit_line(${name} root "${CMAKE_CURRENT_SOURCE_DIR}")
  # Its parts are known only when all of the project's CMake files have been read.
  file(GENERATE OUTPUT "${listing}"
    CONTENT "$<JOIN:$<TARGET_GENEX_EVAL:${name},$<TARGET_PROPERTY:${name},OPKIT_LINES>>,\n>\n")
  if(NOT TARGET binary)
    add_custom_target(binary)
  endif()
  add_dependencies(binary ${name})
  if(arg_TYPE STREQUAL "RUN")
    _opkit_run_package(${name} "${artifact}" "${config_INSTALL_PATH}")
  else()
    install(DIRECTORY "${artifact}.library/" DESTINATION "${config_INSTALL_PATH}")
  endif()
endfunction()

# The target "package", which makes a file that installs the operators.
function(_opkit_run_package name artifact folder)
  string(TOLOWER "custom_opp_${CMAKE_HOST_SYSTEM_NAME}_${CMAKE_HOST_SYSTEM_PROCESSOR}.run" file)
  configure_file("${_opkit_npu_op_dir}/package.sh.in" "${artifact}.sh" @ONLY)
  if(NOT TARGET package)
    add_custom_target(package)
  endif()
  add_custom_target(opkit_${name}_package
    COMMAND sh "${artifact}.sh" --pack "${artifact}" "${folder}/${file}"
    COMMENT "Packing ${file}"
    VERBATIM)
  add_dependencies(opkit_${name}_package ${name})
  add_dependencies(package opkit_${name}_package)
endfunction()

# What belongs to a package: targets of the functions below, or files that go beside its headers.
function(npu_op_package_add name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TYPE;PACKAGE_PATH" "LIBRARY;FILES")
  foreach(part IN LISTS arg_LIBRARY)
    if(NOT TARGET ${part})
      message(FATAL_ERROR "npu_op_package_add(${name} LIBRARY ${part}): there is no such target")
    endif()
    set_property(TARGET ${name} APPEND PROPERTY OPKIT_LINES
      "$<JOIN:$<TARGET_GENEX_EVAL:${part},$<TARGET_PROPERTY:${part},OPKIT_LINES>>,\n>")
  endforeach()
  if(NOT arg_FILES)
    return()
  endif()
  if(arg_TYPE STREQUAL "ACLNN")
    set(arg_PACKAGE_PATH op_api/include)
  elseif(arg_TYPE STREQUAL "GRAPH")
    set(arg_PACKAGE_PATH op_proto/inc)
  elseif(NOT arg_PACKAGE_PATH)
    message(FATAL_ERROR "npu_op_package_add(${name} FILES): say where they go: TYPE ACLNN, TYPE GRAPH or PACKAGE_PATH")
  endif()
  if(NOT TARGET opkit_${name}_package)
    message(FATAL_ERROR "npu_op_package_add(${name} FILES): only packages of TYPE RUN hold other files")
  endif()
  set(files)
  foreach(file IN LISTS arg_FILES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND files "${file}")
  endforeach()
  string(MD5 key "${arg_PACKAGE_PATH};${files}")
  set(folder "${CMAKE_BINARY_DIR}/opkit/${name}/${arg_PACKAGE_PATH}")
  add_custom_target(opkit_${name}_files_${key}
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${CMAKE_COMMAND}" -E copy ${files} "${folder}"
    VERBATIM)
  # The build deletes headers that are not its own.
  add_dependencies(opkit_${name}_files_${key} ${name})
  add_dependencies(opkit_${name}_package opkit_${name}_files_${key})
endfunction()

# A library of the host side. Only the sources of TILING libraries count: they register the operators, and opkit build
# makes the aclnn functions and the prototypes of them.
function(npu_op_library name)
  set(files ${ARGN})
  list(GET files 0 kind)
  list(REMOVE_AT files 0)
  if(kind STREQUAL "TYPE")
    list(GET files 0 kind)
    list(REMOVE_AT files 0)
  endif()
  _opkit_part(${name})
  if(kind STREQUAL "TILING")
    foreach(file IN LISTS files)
      get_filename_component(file "${file}" ABSOLUTE)
      if(EXISTS "${file}")
        _opkit_line(${name} host "${file}")
      elseif(NOT file MATCHES "^${ASCEND_AUTOGEN_PATH}/")
        message(FATAL_ERROR "npu_op_library(${name} TILING): there is no ${file}")
      endif()
    endforeach()
    # Read when all properties are set.
    foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
      set(values "$<TARGET_PROPERTY:${name},${property}>")
      set(flag "$<IF:$<STREQUAL:${property},INCLUDE_DIRECTORIES>,-I,-D>")
      set_property(TARGET ${name} APPEND PROPERTY OPKIT_LINES
        "$<$<BOOL:${values}>:host-option\t${flag}$<JOIN:${values},\nhost-option\t${flag}>>")
    endforeach()
  elseif(kind MATCHES "_PLUGIN$")
    message(STATUS "opkit does not build ${name}: it has no ${kind} libraries")
  else()
    foreach(file IN LISTS files)
      get_filename_component(file "${file}" ABSOLUTE)
      if(kind STREQUAL "ACLNN" AND EXISTS "${file}" AND NOT file MATCHES "^${ASCEND_AUTOGEN_PATH}/")
        message(WARNING "opkit leaves ${file} out of ${name}: it makes all aclnn functions itself")
      endif()
    endforeach()
  endif()
endfunction()

# Tiling on the chip: opkit tiles on the host, by the sources of the TILING library.
function(npu_op_device_tiling_library name)
  _opkit_part(${name})
endfunction()

function(npu_op_kernel_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SRC_BASE;TILING_LIBRARY" "")
  get_filename_component(base "${arg_SRC_BASE}" ABSOLUTE)
  _opkit_part(${name})
  _opkit_line(${name} base ${name} "${base}")
endfunction()

function(npu_op_kernel_sources name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OP_TYPE;KERNEL_DIR;KERNEL_FILE" "COMPUTE_UNIT")
  _opkit_part(${name})
  if(arg_OP_TYPE AND arg_KERNEL_FILE)
    if(NOT arg_KERNEL_DIR)
      set(arg_KERNEL_DIR .)
    endif()
    _opkit_units(units ${arg_COMPUTE_UNIT})
    _opkit_line(${name} kernel ${name} ${arg_OP_TYPE} "${arg_KERNEL_DIR}" "${arg_KERNEL_FILE}" ${units})
  endif()
endfunction()

function(npu_op_kernel_options name op)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMPUTE_UNIT;OPTIONS")
  _opkit_part(${name})
  _opkit_units(units ${arg_COMPUTE_UNIT})
  _opkit_line(${name} options ${name} ${op} ${units} ${arg_OPTIONS})
endfunction()

# Generated sources are opkit's own.
function(npu_op_code_gen)
endfunction()
