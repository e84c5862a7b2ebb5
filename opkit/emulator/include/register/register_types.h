/// Which symbols a host library shows, by the names that public host code uses. Source: public operator libraries.
#pragma once

#define FMK_FUNC_HOST_VISIBILITY __attribute__((visibility("default")))
#define FMK_FUNC_DEV_VISIBILITY __attribute__((visibility("default")))
