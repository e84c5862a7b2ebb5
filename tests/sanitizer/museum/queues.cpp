// Queues, buffers, pools and event ids out of order. See ../test_exhibits.py for how these lines are read.

// QUEUE-MISUSE: a tensor is put into its queue twice
template <bool kMended>
inline void enqueued_twice(GM_ADDR x, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> queue;
  pipe.InitBuffer(queue, 2, 256);
  LocalTensor<float> tensor = queue.AllocTensor<float>();
  DataCopy(tensor, input(x), 64);
  queue.EnQue(tensor);
  if (!kMended) queue.EnQue(tensor);  // here
  queue.FreeTensor(queue.DeQue<float>());
}

// QUEUE-MISUSE: a tensor is given back twice
template <bool kMended>
inline void freed_twice(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> tensor = queue.AllocTensor<float>();
  queue.FreeTensor(tensor);
  if (!kMended) queue.FreeTensor(tensor);  // here
}

// QUEUE-MISUSE: a second tensor is asked for while the only buffer is out
template <bool kMended>
inline void no_buffer_left(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  for (int tile = 0; tile < 2; ++tile) {
    LocalTensor<float> tensor = queue.AllocTensor<float>();  // here
    if (kMended) queue.FreeTensor(tensor);
  }
}

// QUEUE-MISUSE: more tensors are put in than the queue is deep
template <bool kMended>
inline void depth_exceeded(GM_ADDR x, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, kMended ? 2 : 1> queue;
  pipe.InitBuffer(queue, 2, 256);
  for (int tile = 0; tile < 2; ++tile) {
    LocalTensor<float> tensor = queue.template AllocTensor<float>();
    DataCopy(tensor, input(x), 64);
    queue.EnQue(tensor);  // here
  }
  for (int tile = 0; tile < 2; ++tile) queue.FreeTensor(queue.template DeQue<float>());
}

// QUEUE-MISUSE: a tensor is given to a queue that it does not come from
template <bool kMended>
inline void tensor_of_another_queue(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> first;
  TQue<TPosition::VECOUT, 1> second;
  pipe.InitBuffer(first, 1, 256);
  pipe.InitBuffer(second, 1, 256);
  LocalTensor<float> tensor = first.AllocTensor<float>();
  if (kMended) {
    first.FreeTensor(tensor);
  } else {
    second.FreeTensor(tensor);  // here
  }
}

// QUEUE-MISUSE: a tensor goes into a queue without AllocTensor
template <bool kMended>
inline void never_allocated(GM_ADDR x, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> tensor(TPosition::VECIN, 0, 64);
  if (kMended) tensor = queue.AllocTensor<float>();
  DataCopy(tensor, input(x), 64);
  queue.EnQue(tensor);  // here
  queue.FreeTensor(queue.DeQue<float>());
}

// QUEUE-MISUSE: a queue is used without InitBuffer
template <bool kMended>
inline void no_init_buffer(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  if (kMended) pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> tensor = queue.AllocTensor<float>();  // here
  queue.FreeTensor(tensor);
}

// QUEUE-MISUSE: a queue is used behind Reset of its pipe
template <bool kMended>
inline void used_behind_reset(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  queue.FreeTensor(queue.AllocTensor<float>());
  pipe.Reset();
  if (kMended) pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> tensor = queue.AllocTensor<float>();  // here
  queue.FreeTensor(tensor);
}

// QUEUE-MISUSE: a pool hands out buffers before it has any
template <bool kMended>
inline void pool_without_memory(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TBufPool<TPosition::VECCALC> pool;
  TBuf<TPosition::VECCALC> buffer;
  if (kMended) pipe.InitBufPool(pool, 1024);
  pool.InitBuffer(buffer, 256);  // here
}

// QUEUE-MISUSE: an event id is given back twice
template <bool kMended>
inline void event_released_twice(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  const TEventID id = pipe.AllocEventID<HardEvent::V_MTE3>();
  pipe.ReleaseEventID<HardEvent::V_MTE3>(id);
  if (!kMended) pipe.ReleaseEventID<HardEvent::V_MTE3>(id);  // here
}

// QUEUE-MISUSE: a ninth event id of one pair of pipes
template <bool kMended>
inline void no_event_id_left(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TEventID ids[9];
  for (int i = 0; i < (kMended ? 8 : 9); ++i) ids[i] = pipe.AllocEventID<HardEvent::V_MTE3>();  // here
  for (int i = 0; i < 8; ++i) pipe.ReleaseEventID<HardEvent::V_MTE3>(ids[i]);
}

// LEAK-TENSOR: one of two buffers is never given back
template <bool kMended>
inline void one_of_two_kept(GM_ADDR x, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 2, 256);
  for (int tile = 0; tile < 2; ++tile) {
    LocalTensor<float> tensor = queue.AllocTensor<float>();  // here
    DataCopy(tensor, input(x), 64);
    queue.EnQue(tensor);
    LocalTensor<float> taken = queue.DeQue<float>();
    if (kMended || tile == 0) queue.FreeTensor(taken);
  }
}

// MEM-FREED-TENSOR: a sum reads a tensor that was given back a line before
template <bool kMended>
inline void freed_too_early(GM_ADDR x, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  TBuf<TPosition::VECCALC> result;
  pipe.InitBuffer(queue, 1, 256);
  pipe.InitBuffer(result, 256);
  LocalTensor<float> tensor = queue.AllocTensor<float>();
  DataCopy(tensor, input(x), 64);
  queue.EnQue(tensor);
  tensor = queue.DeQue<float>();
  if (!kMended) queue.FreeTensor(tensor);
  Adds(result.Get<float>(), tensor, 1.0f, 64);  // here
  if (kMended) queue.FreeTensor(tensor);
}
