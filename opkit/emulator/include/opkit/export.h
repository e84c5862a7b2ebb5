/// How a symbol of the emulator library is made visible to kernels and bindings.
#pragma once

#if defined(OPKIT_BUILDING_EMULATOR)
#define OPKIT_API __attribute__((visibility("default")))
#else
#define OPKIT_API
#endif
