# Whether the compiler of the language ASC answers at all. It compiles with the host's compiler, whose failures name
# themselves better in the first real source than in a probe.
if(CMAKE_ASC_COMPILER_WORKS)
  return()
endif()
separate_arguments(_opkit_arguments UNIX_COMMAND "${CMAKE_ASC_COMPILER_ARG1}")
execute_process(
  COMMAND ${CMAKE_ASC_COMPILER} ${_opkit_arguments} --cmake-dir
  RESULT_VARIABLE _opkit_result OUTPUT_QUIET ERROR_VARIABLE _opkit_error)
if(NOT _opkit_result EQUAL 0)
  message(FATAL_ERROR
    "The ASC compiler \"${CMAKE_ASC_COMPILER} ${CMAKE_ASC_COMPILER_ARG1}\" does not work:\n${_opkit_error}")
endif()
set(CMAKE_ASC_COMPILER_WORKS 1 CACHE INTERNAL "")
