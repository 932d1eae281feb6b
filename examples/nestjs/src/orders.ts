// The controller, the service and the module. Node runs TypeScript by removing its types, and cannot run the syntax of
// decorators. A decorator is a function, so each is called by hand below its class, with the syntax beside it.
import 'reflect-metadata';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { contextOf, type IdempotentRequest } from '@holdfast/server';
import { sendResponse } from '@holdfast/server/express';
import type { SqliteEngine } from '@holdfast/sqlite';
import {
  BadRequestException,
  Body,
  Controller,
  type DynamicModule,
  Get,
  Inject,
  Injectable,
  Module,
  Post,
  Req,
  Res,
} from '@nestjs/common';
import type { Request, Response } from 'express';

const ENGINE = Symbol('engine');

export class OrderService {
  readonly #engine: SqliteEngine;

  constructor(engine: SqliteEngine) {
    this.#engine = engine;
  }

  /** The order and the record of its key are one transaction: both are stored, or neither is. */
  place(item: string, key: IdempotentRequest<DatabaseSync>) {
    return key.commit((database) => {
      const { lastInsertRowid: id } = database.prepare('INSERT INTO orders (item) VALUES (?)').run(item);
      const headers = { 'content-type': 'application/json', location: `/orders/${id}` };
      return { status: 201, headers, body: JSON.stringify({ id: Number(id), item }) };
    });
  }

  count(): Promise<number> {
    return this.#engine.transaction((database) =>
      Number(database.prepare('SELECT count(*) AS count FROM orders').get()?.count),
    );
  }
}
Injectable()(OrderService); // @Injectable()
Inject(ENGINE)(OrderService, undefined, 0); // constructor(@Inject(ENGINE) engine)

class OrderController {
  readonly #orders: OrderService;

  constructor(orders: OrderService) {
    this.#orders = orders;
  }

  async place(body: { item?: unknown } | undefined, request: Request, response: Response): Promise<void> {
    if (typeof body?.item !== 'string') throw new BadRequestException({ error: 'item is missing' });
    const { idempotent } = contextOf<DatabaseSync>(request)!;
    sendResponse(response, await this.#orders.place(body.item, idempotent!));
  }

  async count(): Promise<{ orders: number }> {
    return { orders: await this.#orders.count() };
  }

  /** Slow on purpose. It stops when the client disconnects, and when the time of the request is over. */
  async report(request: Request): Promise<{ orders: number }> {
    await wait(500, undefined, { signal: contextOf(request)!.signal });
    return this.count();
  }
}
const routes = OrderController.prototype;
Controller()(OrderController); // @Controller()
Inject(OrderService)(OrderController, undefined, 0); // constructor(@Inject(OrderService) orders)
Post('orders')(routes, 'place', methodOf('place')); // @Post('orders')
Body()(routes, 'place', 0); // place(@Body() body, @Req() request, @Res() response)
Req()(routes, 'place', 1);
Res()(routes, 'place', 2);
Get('orders')(routes, 'count', methodOf('count')); // @Get('orders')
Get('report')(routes, 'report', methodOf('report')); // @Get('report')
Req()(routes, 'report', 0); // report(@Req() request)

class OrderModule {}
Module({})(OrderModule); // @Module({})

export function orderModule(engine: SqliteEngine): DynamicModule {
  const providers = [{ provide: ENGINE, useValue: engine }, OrderService];
  return { module: OrderModule, controllers: [OrderController], providers };
}

function methodOf(name: 'place' | 'count' | 'report'): PropertyDescriptor {
  return Object.getOwnPropertyDescriptor(routes, name)!;
}
