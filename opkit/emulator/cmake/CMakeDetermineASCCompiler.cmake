# Finds the compiler of the language ASC: opkit's own driver.
# CMAKE_ASC_COMPILER may hold a list, a program and its first arguments; "opkit cc --cmake-args" prints such a one.

set(CMAKE_ASC_COMPILER_ENV_VAR "")

if(CMAKE_ASC_COMPILER)
  list(LENGTH CMAKE_ASC_COMPILER _opkit_words)
  if(_opkit_words GREATER 1)
    set(_opkit_arguments "${CMAKE_ASC_COMPILER}")
    list(GET _opkit_arguments 0 _opkit_program)
    list(REMOVE_AT _opkit_arguments 0)
    string(REPLACE ";" " " CMAKE_ASC_COMPILER_ARG1 "${_opkit_arguments}")
    set(CMAKE_ASC_COMPILER "${_opkit_program}" CACHE FILEPATH "The compiler of the language ASC" FORCE)
    set(CMAKE_ASC_COMPILER_ARG1 "${CMAKE_ASC_COMPILER_ARG1}" CACHE INTERNAL "Its first arguments")
  elseif(NOT DEFINED CMAKE_ASC_COMPILER_ARG1)
    set(CMAKE_ASC_COMPILER_ARG1 "cc")
  endif()
else()
  # Next to the Python installation that holds this file first: another opkit may be on PATH.
  get_filename_component(_opkit_prefix "${CMAKE_CURRENT_LIST_DIR}/../../../../../.." ABSOLUTE)
  find_program(CMAKE_ASC_COMPILER NAMES opkit HINTS "${_opkit_prefix}/bin" DOC "The compiler of the language ASC")
  if(NOT CMAKE_ASC_COMPILER)
    message(FATAL_ERROR "There is no opkit on PATH. Pass what \"opkit cc --cmake-args\" prints to cmake.")
  endif()
  set(CMAKE_ASC_COMPILER_ARG1 "cc")
endif()
mark_as_advanced(CMAKE_ASC_COMPILER)

set(CMAKE_ASC_COMPILER_ID "opkit")
find_program(CMAKE_AR NAMES ar gcc-ar llvm-ar)
find_program(CMAKE_RANLIB NAMES ranlib gcc-ranlib llvm-ranlib)
mark_as_advanced(CMAKE_AR CMAKE_RANLIB)

configure_file(
  "${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in" "${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake" @ONLY)
