#include "testing/fake_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "store/uri.h"

namespace grebe::testing {
namespace {

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

}  // namespace

std::string FakeRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string FakeRequest::Parameter(const std::string& name) const {
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string pair = query.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name) {
      return store::PercentDecode(equals < pair.size() ? pair.substr(equals + 1) : "");
    }
    at = end + 1;
  }
  return "";
}

Result<std::unique_ptr<FakeHttpServer>> FakeHttpServer::Start(Handler handler) {
  std::unique_ptr<FakeHttpServer> server(new FakeHttpServer(std::move(handler)));
  server->listen_fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(server->listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(server->listen_fd_, 256) != 0 ||
      ::getsockname(server->listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Internal("cannot listen", "errno", errno);
  }
  server->port_ = ntohs(address.sin_port);
  server->acceptor_ = std::thread([raw = server.get()] { raw->Accept(); });
  return server;
}

FakeHttpServer::~FakeHttpServer() {
  stopping_ = true;
  ::shutdown(listen_fd_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  {
    std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  ::close(listen_fd_);
}

std::string FakeHttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::vector<FakeRequest> FakeHttpServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void FakeHttpServer::Accept() {
  while (!stopping_) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    ++connection_count_;
    std::lock_guard lock(mutex_);
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

bool FakeHttpServer::ReadRequest(int fd, std::string* pending, FakeRequest* request) {
  char chunk[65536];
  size_t head_end;
  while ((head_end = pending->find("\r\n\r\n")) == std::string::npos) {
    const ssize_t got = ::recv(fd, chunk, sizeof(chunk), 0);
    if (got <= 0) return false;
    pending->append(chunk, static_cast<size_t>(got));
  }
  const std::string head = pending->substr(0, head_end + 2);
  pending->erase(0, head_end + 4);
  size_t at = head.find("\r\n");
  const std::string first = head.substr(0, at);
  const size_t space = first.find(' ');
  request->method = first.substr(0, space);
  std::string target = first.substr(space + 1, first.rfind(' ') - space - 1);
  const size_t question = target.find('?');
  if (question != std::string::npos) request->query = target.substr(question + 1);
  request->path = target.substr(0, question);
  for (at += 2; at < head.size();) {
    const size_t end = head.find("\r\n", at);
    const std::string line = head.substr(at, end - at);
    const size_t colon = std::min(line.find(':'), line.size());
    const size_t value = line.find_first_not_of(' ', colon + 1);
    request->headers[Lower(line.substr(0, colon))] =
        value == std::string::npos ? "" : line.substr(value);
    at = end + 2;
  }
  const auto length = static_cast<size_t>(std::atoll(request->Header("content-length").c_str()));
  while (pending->size() < length) {
    const ssize_t got = ::recv(fd, chunk, sizeof(chunk), 0);
    if (got <= 0) return false;
    pending->append(chunk, static_cast<size_t>(got));
  }
  request->body = pending->substr(0, length);
  pending->erase(0, length);
  return true;
}

bool FakeHttpServer::WaitDelay(int delay_ms) {
  for (; delay_ms > 0 && !stopping_; delay_ms -= 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(delay_ms, 10)));
  }
  return !stopping_;
}

// Whether the connection goes on.
bool FakeHttpServer::Reply(int fd, const FakeRequest& request, const FakeReply& reply) {
  if (reply.close_without_answer) return false;
  if (reply.reset) {
    const linger hard{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    return false;
  }
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  const int64_t length = reply.content_length >= 0 ? reply.content_length
                                                   : static_cast<int64_t>(reply.body.size());
  if (reply.status != 204) head += "Content-Length: " + std::to_string(length) + "\r\n";
  head += "\r\n";
  if (request.method != "HEAD") head += reply.body.substr(0, reply.body_sent_max);
  if (!SendAll(fd, head)) return false;
  return !reply.close_after && (request.method == "HEAD" || reply.body_sent_max == SIZE_MAX);
}

void FakeHttpServer::Serve(int fd) {
  std::string pending;
  while (!stopping_) {
    FakeRequest request;
    if (!ReadRequest(fd, &pending, &request)) break;
    request.ordinal = ++request_count_;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const FakeReply reply = handler_(request);
    if (!WaitDelay(reply.delay_ms) || !Reply(fd, request, reply)) break;
  }
  std::lock_guard lock(mutex_);
  open_.erase(fd);
  ::close(fd);
}

}  // namespace grebe::testing
