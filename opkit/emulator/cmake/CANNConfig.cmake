# find_package(CANN): the emulator as one library, and kernels compiled into libraries of their own.
#
#   CANN_INCLUDE_DIRS, CANN_LIBRARIES
#   ascendc_add_library(NAME STATIC|SHARED SOURCES...)    also as ascendc_library; "opkit cc" compiles the sources

include("${CMAKE_CURRENT_LIST_DIR}/ASCConfig.cmake")
set(CANN_INCLUDE_DIRS "${ASC_INCLUDE_DIRS}")
set(CANN_LIBRARIES "${ASC_LIBRARIES}")

function(ascendc_add_library name type)
  if(NOT type MATCHES "^(STATIC|SHARED)$")
    message(FATAL_ERROR "ascendc_add_library(${name} ${type}): the types are STATIC and SHARED")
  endif()
  _opkit_command(opkit)
  set(objects "")
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.${stem}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${opkit} cc -x asc -fPIC -O2 -c "${path}" -o "${object}"
      DEPENDS "${path}"
      COMMENT "Compiling kernels of ${source}"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_library(${name} ${type} ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC ${CANN_LIBRARIES})
endfunction()

macro(ascendc_library)
  ascendc_add_library(${ARGV})
endmacro()

set(CANN_FOUND TRUE)
