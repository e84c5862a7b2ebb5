# find_package(torch_npu): what a C++ extension for the device needs, as the target torch_npu; call it behind
# find_package(Torch). PyTorch's own package has no target of its name with its Python part: Torch::Torch is that.

include("${CMAKE_CURRENT_LIST_DIR}/ASCConfig.cmake")
if(NOT TORCH_LIBRARIES)
  set(torch_npu_FOUND FALSE)
  set(torch_npu_NOT_FOUND_MESSAGE "find_package(Torch) has to come first")
  return()
endif()

if(NOT TARGET Torch::Torch)
  find_package(Python3 COMPONENTS Interpreter Development.Module REQUIRED)
  find_library(TORCH_PYTHON_LIBRARY torch_python PATHS "${TORCH_INSTALL_PREFIX}/lib" REQUIRED)
  add_library(Torch::Torch INTERFACE IMPORTED)
  set_target_properties(Torch::Torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS};${Python3_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES};${TORCH_PYTHON_LIBRARY}")
endif()

if(NOT TARGET torch_npu)
  get_filename_component(_opkit_package "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  add_library(torch_npu INTERFACE IMPORTED)
  # The module's name is the target's, as setup.py has it.
  set_target_properties(torch_npu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_opkit_package}/torch_npu/stand_in/torch_npu/include;${ASC_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "TORCH_EXTENSION_NAME=$<TARGET_PROPERTY:NAME>"
    INTERFACE_LINK_LIBRARIES "${ASC_LIBRARIES}")
  unset(_opkit_package)
endif()
set(torch_npu_FOUND TRUE)
