/// The vendor's profiler, as programs call it. opkit times programs from outside.
#pragma once

#error "opkit has no profiling calls (acl/acl_prof.h): leave them out, and run the program under \"opkit profile\""
