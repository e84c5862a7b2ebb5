// Captures of streams, as programs call them.
#include "acl/capture.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "acl/caller.h"
#include "acl/error.h"
#include "acl/state.h"

using namespace opkit::acl;
namespace opkit::acl {

void submit(Stream& stream, Task task) {
  if (stream.capture == nullptr) {
    stream.tasks.push_back(std::move(task));
    if (stream.runs_at_once) drain(stream);
    return;
  }
  Capture& capture = *stream.capture;
  const auto found = std::find(capture.streams.begin(), capture.streams.end(), &stream);
  capture.entries.push_back({std::move(task), static_cast<size_t>(found - capture.streams.begin())});
}

aclError refuse_captured(const Stream& stream, const char* function) {
  if (stream.capture == nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, function,
              "the stream is being captured: its tasks run with aclmdlRIExecuteAsync, behind aclmdlRICaptureEnd");
}

aclError refuse_while_capturing(const Runtime& runtime, const char* function) {
  const auto keeps = [](const Stream& stream) {
    if (stream.capture == nullptr || stream.capture->mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
    const bool is_global = stream.capture->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    return is_global || stream.capture->thread == std::this_thread::get_id();
  };
  bool is_kept =
      std::any_of(runtime.streams.begin(), runtime.streams.end(), [&](Stream* stream) { return keeps(*stream); });
  for (const Context* context : runtime.contexts) is_kept = is_kept || keeps(context->default_stream);
  if (!is_kept) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, function,
              "a stream is being captured, and this call would run at once: use its asynchronous form on that stream");
}

namespace {

Model* find_model(Runtime& runtime, aclmdlRI handle, const char* function, aclError* error) {
  auto* model = static_cast<Model*>(handle);
  if (runtime.models.count(model) != 0) return model;
  *error = fail(ACL_ERROR_RT_PARAM_INVALID, function, "%p is no running instance, or was destroyed", handle);
  return nullptr;
}

/// Runs every captured task; the first failure ends the run.
aclError run_all(const Capture& capture) {
  for (const Capture::Entry& entry : capture.entries) {
    if (!entry.task.run) continue;
    if (const aclError error = entry.task.run()) return error;
  }
  return ACL_SUCCESS;
}

aclError execute(Runtime& runtime, aclmdlRI handle, aclrtStream stream_handle, const char* function, Stream** used) {
  aclError error = ACL_SUCCESS;
  Model* model = find_model(runtime, handle, function, &error);
  if (model == nullptr) return error;
  Stream* stream = find_stream(runtime, stream_handle, function, &error);
  if (stream == nullptr) return error;
  if (const aclError captured = refuse_captured(*stream, function)) return captured;
  submit(*stream, {[capture = model->capture] { return run_all(*capture); }, nullptr, nullptr, function});
  *used = stream;
  return ACL_SUCCESS;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

}  // namespace
}  // namespace opkit::acl

aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode mode) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRICaptureBegin", "%d is no capture mode", static_cast<int>(mode));
  }
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclmdlRICaptureBegin", &error);
  if (stream == nullptr) return error;
  if (const aclError captured = refuse_captured(*stream, "aclmdlRICaptureBegin")) return captured;
  stream->capture = std::make_shared<Capture>();
  stream->capture->streams = {stream};
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* modelRI) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (modelRI == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRICaptureEnd", "the pointer is null");
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclmdlRICaptureEnd", &error);
  if (stream == nullptr) return error;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->streams[0] != stream) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRICaptureEnd",
                "aclmdlRICaptureBegin was not called with the stream");
  }
  const bool is_bound = capture->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  if (is_bound && capture->thread != std::this_thread::get_id()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRICaptureEnd", "another thread began the capture");
  }
  capture->is_ended = true;
  for (Stream* captured : capture->streams) {
    if (runtime.streams.count(captured) != 0 || captured == stream) captured->capture = nullptr;
  }
  auto* model = new Model{capture};
  runtime.models.insert(model);
  *modelRI = model;
  return ACL_SUCCESS;
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  Stream* used = nullptr;
  return execute(runtime, modelRI, stream, "aclmdlRIExecuteAsync", &used);
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (timeout < -1 || timeout == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRIExecute", "%d is no timeout: -1, or milliseconds", timeout);
  }
  Stream* used = nullptr;
  if (const aclError error = execute(runtime, modelRI, nullptr, "aclmdlRIExecute", &used)) return error;
  return synchronize(runtime, *used, "aclmdlRIExecute");
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Model* model = find_model(runtime, modelRI, "aclmdlRIDestroy", &error);
  if (model == nullptr) return error;
  runtime.models.erase(model);  // runs that are queued keep its tasks
  delete model;
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) {
  (void)flags;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Model* model = find_model(runtime, modelRI, "aclmdlRIDebugJsonPrint", &error);
  if (model == nullptr) return error;
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRIDebugJsonPrint", "%s cannot be written: %s",
                path == nullptr ? "a null path" : path, path == nullptr ? "no path" : std::strerror(errno));
  }
  const char* separator = "";
  std::fputs("{\"tasks\": [", file);
  for (const Capture::Entry& entry : model->capture->entries) {
    std::fprintf(file, "%s\n  {\"stream\": %zu, \"name\": %s}", separator, entry.stream,
                 quoted(entry.task.name).c_str());
    separator = ",";
  }
  std::fputs("\n]}\n", file);
  std::fclose(file);
  return ACL_SUCCESS;
}
