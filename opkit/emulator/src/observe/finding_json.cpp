#include "observe/finding_json.h"

#include <cstdio>

namespace opkit {
namespace {

/// Writes the members of one object, in the order of the calls.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }

  void text(const char* name, const std::string& value) {
    key(name);
    quote(value);
  }
  void number(const char* name, uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void site(const char* name, const Site& site) {
    key(name);
    if (site.file.empty() && site.module.empty()) {
      out_ += "null";
      return;
    }
    Object fields(out_);
    fields.text("file", site.file);
    fields.number("line", site.line);
    fields.text("instruction", site.instruction);
    fields.text("pipe", pipe_name(site.pipe));
    fields.text("module", site.module);
    fields.number("offset", site.offset);
    fields.end();
  }
  void witness(const char* name, const Finding& finding) {
    key(name);
    const Witness& witness = finding.witness;
    if (!witness.is_tried) {
      out_ += "null";
      return;
    }
    Object fields(out_);
    fields.number("differing", witness.differing);
    fields.text("place", witness.place);
    fields.number("element", witness.element);
    fields.text("dtype", dtype_code(finding.dtype));
    fields.text("ordered", witness.ordered);
    fields.text("lost", witness.lost);
    fields.text("fault", witness.fault);
    fields.end();
  }
  void end() { out_ += '}'; }

 private:
  void key(const char* name) {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    quote(name);
    out_ += ':';
  }

  void quote(const std::string& value) {
    out_ += '"';
    for (const char character : value) {
      const auto byte = static_cast<unsigned char>(character);
      if (character == '"' || character == '\\') {
        out_ += '\\';
        out_ += character;
      } else if (byte < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
        out_ += escaped;
      } else {
        out_ += character;
      }
    }
    out_ += '"';
  }

  std::string& out_;
  bool is_first_ = true;
};

}  // namespace

std::string findings_json(const std::vector<Finding>& findings) {
  std::string out = "[";
  for (const Finding& finding : findings) {
    if (out.size() > 1) out += ",\n";
    Object fields(out);
    fields.text("id", finding.id);
    fields.text("fault", finding.fault);
    fields.text("message", finding.message);
    fields.text("help", finding.help);
    fields.text("kernel", finding.kernel);
    fields.site("site", finding.site);
    fields.site("other", finding.other);
    fields.number("block", finding.block);
    fields.text("sub_core", finding.is_cube ? "aic" : "aiv");
    fields.number("sub_block", finding.sub_block);
    fields.number("other_block", finding.other_block);
    fields.number("instruction", finding.instruction);
    fields.text("space", finding.space);
    fields.text("allocation", finding.allocation);
    fields.number("begin", finding.begin);
    fields.number("end", finding.end);
    fields.number("count", finding.count);
    fields.witness("witness", finding);
    fields.end();
  }
  return out + "]";
}

}  // namespace opkit
