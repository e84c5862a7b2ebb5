/// The visibility that libraries of operators give to shared helpers.
#pragma once

#define OPBASE_API
