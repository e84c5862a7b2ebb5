"""An operator that doubles its input, in versions that do it well, or badly in one way each."""

from __future__ import annotations

import json
import shutil
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import opkit

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")

# What the file `mode` beside the library says is done from that call on: `hang 3`.
HOST = """
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include "register/op_def_registry.h"

struct TilingData {
  uint32_t length;
  uint32_t mode;
};

static void whereAmI() {}

static std::string modeNow() {
  static char mode[32] = "good";
  static int after = -1;
  static int calls = 0;
  if (after < 0) {
    after = 0;
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&whereAmI), &info);
    std::string path = info.dli_fname;
    path = path.substr(0, path.rfind('/')) + "/mode";
    if (FILE* file = std::fopen(path.c_str(), "r")) {
      if (std::fscanf(file, "%31s %d", mode, &after) < 1) std::strcpy(mode, "good");
      std::fclose(file);
    }
  }
  return calls++ < after ? "good" : mode;
}

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const std::string mode = modeNow();
  if (mode == "crash") raise(SIGKILL);
  if (mode == "segfault") { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
  while (mode == "hang") usleep(100000);
  while (mode == "grow") {
    char* more = static_cast<char*>(std::malloc(1 << 20));
    if (more == nullptr) abort();
    std::memset(more, 1, 1 << 20);
  }
  if (mode == "refuse") return ge::GRAPH_FAILED;
  TilingData* tiling = context->GetTilingData<TilingData>();
  tiling->length = context->GetInputShape(0)->GetOriginShape().GetShapeSize();
  const bool wrong = mode == "wrong" || (mode == "wrong_at_5" && tiling->length == 5);
  tiling->mode = mode == "nan" ? 1 : wrong ? 2 : 0;
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Twice : public OpDef {
 public:
  explicit Twice(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT})
        .Format({ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Twice);
}  // namespace ops
"""

KERNEL = """
#include <cstdint>
#include "opkit/api/tiling.h"
#include "opkit/kernel_entry.h"

struct TilingData {
  uint32_t length;
  uint32_t mode;
};

extern "C" void twice(uint8_t* x, uint8_t* y, uint8_t* workspace, uint8_t* tiling) {
  REGISTER_TILING_DEFAULT(TilingData);
  GET_TILING_DATA(data, tiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  (void)workspace;
  auto* in = reinterpret_cast<float*>(x);
  auto* out = reinterpret_cast<float*>(y);
  for (uint32_t i = 0; i < data.length; ++i) {
    out[i] = 2 * in[i];
    if (data.mode == 1) out[i] = __builtin_nanf("");
    if (data.mode == 2) out[i] += 1;
  }
}
OPKIT_KERNEL_TABLE(twice)
"""

MANIFEST = {
    "package": "twice",
    "chip": "Ascend910B2",
    "operators": [
        {
            "op": "Twice",
            "kernel": "twice",
            "inputs": [{"name": "x", "param_type": "required"}],
            "outputs": [{"name": "y", "param_type": "required"}],
            "variants": [{"dtypes": ["float32", "float32"]}],
        }
    ],
}
GOLDEN = "def twice(x):\n    return 2 * x\n"

# Nothing here is late because the machine is busy.
PATIENT = {"limits": {"attempt_seconds": 120, "call_seconds": 300}}

VersionMaker = Callable[..., Path]


@pytest.fixture(scope="session")
def twice_libraries(
    tmp_path_factory: pytest.TempPathFactory, compile_shared: Callable[..., None]
) -> Path:
    """The libraries of Twice, built once."""
    folder = tmp_path_factory.mktemp("twice")
    sources = tmp_path_factory.mktemp("sources")
    names = {"libop_host.so": HOST, "twice.dav-2201.float32-float32.so": KERNEL}
    for name, text in names.items():
        source = sources / f"{name}.cpp"
        source.write_text(textwrap.dedent(text))
        compile_shared(source, folder / name)
    from opkit.emulator import _emulator

    versions = {"opkit": opkit.__version__, "abi_version": _emulator.abi_version}
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **versions}))
    return folder


@pytest.fixture(scope="session")
def write_version(twice_libraries: Path) -> Callable[..., Path]:
    """Return a function that writes the source of a version into a folder."""

    def write(
        folder: Path,
        name: str,
        mode: str = "good",
        after: int | str = 0,
        *,
        golden: str = GOLDEN,
    ) -> Path:
        root = folder / name
        shutil.copytree(twice_libraries, root / "_lib")
        # The name is part of the content, so that every version is one of its own.
        (root / "_lib" / "mode").write_text(f"{mode} {after} {name}\n")
        if golden:
            (root / "golden.py").write_text(golden)
        return root

    return write


@pytest.fixture
def make_version(write_version: Callable[..., Path], tmp_path: Path) -> VersionMaker:
    """Return a function that gives the source of a version; it misbehaves from its n-th call on."""

    def make(name: str, *mode: str, golden: str = GOLDEN) -> Path:
        return write_version(tmp_path / "sources", name, *mode, golden=golden)

    return make


@pytest.fixture
def open_service(make_version: VersionMaker, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a service of `twice`; versions are given by their modes."""
    from opkit.service import Service, ServiceSettings

    opened: list[Any] = []

    def open_one(
        versions: dict[str, str],
        *,
        isolation: str = "none",
        store: Path | None = None,
        golden: str = GOLDEN,
        http: dict[str, Any] | None = None,
        telemetry: dict[str, Any] | None = None,
        **operator: Any,
    ) -> Any:
        sources = {
            label: {"source": str(make_version(label, *mode.split(), golden=golden))}
            for label, mode in versions.items()
        }
        settings = ServiceSettings.model_validate(
            {
                "store": store or tmp_path / "store",
                "isolation": isolation,
                "http": http or {},
                "telemetry": telemetry or {},
                "operators": [{"name": "twice", "versions": sources, **PATIENT, **operator}],
            }
        )
        service = Service(settings)
        opened.append(service)
        assert service.wait_until_ready(120)
        return service

    yield open_one
    for service in opened:
        service.close()


class Served:
    """A service that listens on a free port, in a thread."""

    def __init__(self, app: Any) -> None:
        import uvicorn

        from opkit.service.server import bound_socket, server_config

        self._socket = bound_socket("127.0.0.1", 0)
        bound = self._socket.__enter__()
        self.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        self._server = uvicorn.Server(server_config(app))
        self._thread = threading.Thread(target=self._server.run, args=([bound],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=60)
        self._socket.__exit__(None, None, None)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Any], str]]:
    """Return a function that serves an application and gives its address."""
    served: list[Served] = []

    def start(app: Any) -> str:
        served.append(Served(app))
        return served[-1].url

    yield start
    for each in served:
        each.close()
